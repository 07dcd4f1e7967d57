// Airflow's theme, where we stand in its frame; else the system's. The style knows the system's only.
(() => {
  function themeOfAirflow() {
    try {
      return window.parent !== window ? window.parent.document.documentElement : null;
    } catch {
      return null;
    }
  }
  function wear(isDark) {
    for (const sheet of document.styleSheets) {
      for (const rule of sheet.cssRules) {
        if (rule instanceof CSSMediaRule && rule.cssText.includes("--page")) rule.media.mediaText = isDark ? "all" : "not all";
      }
    }
    document.documentElement.style.colorScheme = isDark ? "dark" : "light";
  }

  const isFollowed = (page) => page.querySelector("#act[data-follow]") !== null;
  const shownEvidence = (page) => page.querySelector("#evidence")?.dataset.digest;
  const isTyped = (place) =>
    [...place.querySelectorAll("input, textarea")].some((each) => each.value !== each.defaultValue || each.checked !== each.defaultChecked) ||
    [...place.querySelectorAll("option")].some((each) => each.selected && each.index && !each.defaultSelected);

  // Times are told in the zone that Airflow is set to, else in the browser's, with their age. Without
  // a script they stay UTC.
  function zone() {
    try {
      const timeZone = JSON.parse(localStorage.getItem("timezone"));
      return new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone;
    } catch {
      return undefined;
    }
  }
  function inZone(instant) {
    const timeZone = zone();
    const parts = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "longOffset" }).formatToParts(instant);
    const offset = parts.find((each) => each.type === "timeZoneName").value.slice(3).replace("+00:00", "");
    const told = new Intl.DateTimeFormat("sv", { timeZone, dateStyle: "short", timeStyle: "medium" }).format(instant);
    return told + (offset || "Z");
  }
  function age(instant) {
    const seconds = Math.abs(Date.now() - instant) / 1000;
    const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([size]) => seconds >= size) ?? [1, ""];
    if (!unit) return "now";
    const told = `${Math.floor(seconds / size)} ${unit}`;
    return instant < Date.now() ? `${told} ago` : `in ${told}`;
  }
  function tellTimes(place) {
    for (const time of place.querySelectorAll("time")) {
      const instant = new Date(time.dateTime);
      const isNarrow = time.closest("table") && !time.closest(".asof");
      time.title = `${inZone(instant)}, ${age(instant)}`;
      time.textContent = time.closest(".run") ? age(instant) : isNarrow ? inZone(instant) : `${inZone(instant)}, ${age(instant)}`;
    }
  }

  async function askedAgain() {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(answer.status);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    tellTimes(found);
    return found;
  }
  function replace(old, now) {
    if (!now || old.outerHTML === now.outerHTML) return;
    const left = old.querySelector(".scroll")?.scrollLeft;
    // The element itself stays: the address may name it, and then it is the tab that is shown.
    for (const name of old.getAttributeNames()) old.removeAttribute(name);
    for (const { name, value } of now.attributes) old.setAttribute(name, value);
    old.replaceChildren(...document.importNode(now, true).childNodes);
    if (left) old.querySelector(".scroll")?.scrollTo(left, 0);
  }

  // A page of now is asked for again while somebody sees it. What the reader is at stays as it is, and
  // so do drawings, which are of a report.
  const isUsed = (place) =>
    place.contains(document.activeElement) || place.querySelector("svg.plane, details[open]") || isTyped(place) ||
    (!getSelection().isCollapsed && getSelection().containsNode(place, true));
  async function refresh() {
    if (document.visibilityState !== "visible") return;
    try {
      const found = await askedAgain();
      for (const old of document.querySelectorAll("header, main > [id], .tab > [id]")) {
        if (!isUsed(old)) replace(old, found.querySelector(old.id ? `#${old.id}` : "header"));
      }
    } catch {
      // Asked again.
    }
  }

  // What Airflow still works at is asked for again, until it is over; what a person types stays. No
  // button is ever shown beside evidence that is not what it stands for.
  async function follow() {
    if (!isFollowed(document)) return;
    try {
      const found = await askedAgain();
      if (shownEvidence(found) !== shownEvidence(document) || (!isFollowed(found) && !isTyped(document))) {
        location.reload();
        return;
      }
      for (const place of ["header", "#act"]) {
        replace(document.querySelector(place), found.querySelector(place));
      }
    } catch {
      // Asked again.
    }
    setTimeout(follow, 2000);
  }

  // The style shows one tab by the address; its link says that it is this one.
  function markTab() {
    const shown = [...document.querySelectorAll(".tab")].find((each) => each.checkVisibility());
    for (const link of document.querySelectorAll(".tabs a")) {
      const place = document.getElementById(link.hash.slice(1));
      link.toggleAttribute("aria-current", Boolean(shown?.contains(place)));
    }
  }

  // Airflow's frame lets no link lead out of it: one of Airflow's own page leads there.
  function leadOut(event) {
    const link = event.target.closest("a[target=_top]");
    if (!link || !airflow || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const out = Object.assign(airflow.ownerDocument.createElement("a"), { href: link.href });
    airflow.append(out);
    out.click();
    out.remove();
  }

  // The address bar is Airflow's: behind its # it is kept where we are, and found again. Airflow itself
  // does so from 3.3 on, in the path, for the page of the navigation.
  function keepPlace() {
    const { history, location: bar } = window.parent;
    const frame = window.frameElement.dataset;
    const here = location.pathname + location.search;
    const wanted = frame.entry ? null : ourPlace(bar.hash.slice(1));
    frame.entry ??= here;
    if (wanted && wanted !== here + location.hash) {
      location.replace(wanted);
      return;
    }
    const isKept = here === frame.entry || bar.pathname.endsWith(location.pathname);
    const place = isKept ? location.hash : `#${here}${location.hash}`;
    history.replaceState(history.state, "", bar.pathname + bar.search + place);
  }
  function ourPlace(text) {
    if (/^[a-z]+$/.test(text)) return `${location.pathname}${location.search}#${text}`; // a tab
    if (!text.startsWith(root) || !URL.canParse(text, location.origin)) return null;
    const { pathname, search, hash } = new URL(text, location.origin);
    const isPage = pathname.startsWith(root) && !/^(api|assets|metrics)\b/.test(pathname.slice(root.length));
    return isPage ? pathname + search + hash : null;
  }

  const root = new URL("..", document.currentScript.src).pathname;
  const airflow = themeOfAirflow();
  if (airflow) {
    const wearIts = () => wear(airflow.classList.contains("dark"));
    new MutationObserver(wearIts).observe(airflow, { attributes: true, attributeFilter: ["class"] });
    wearIts();
    keepPlace();
    addEventListener("hashchange", keepPlace);
  }
  document.addEventListener("click", leadOut);
  tellTimes(document);
  if (document.querySelector("main[data-live]")) {
    setInterval(refresh, 60_000);
    document.addEventListener("visibilitychange", refresh);
  }
  for (const moment of ["hashchange", "load"]) addEventListener(moment, markTab);
  // Milliseconds since the page was asked for.
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
  setTimeout(follow, 2000);
})();
