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
  const isTyped = () => [...document.querySelectorAll("input, textarea")].some((each) => each.value !== each.defaultValue);

  // What Airflow still works at is asked for again, until it is over; what a person types stays. No
  // button is ever shown beside evidence that is not what it stands for.
  async function follow() {
    if (!isFollowed(document)) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(answer.status);
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (shownEvidence(found) !== shownEvidence(document) || (!isFollowed(found) && !isTyped())) {
        location.reload();
        return;
      }
      for (const place of ["header", "#act"]) {
        const [old, now] = [document.querySelector(place), found.querySelector(place)];
        if (now && old.outerHTML !== now.outerHTML) old.replaceWith(document.importNode(now, true));
      }
    } catch {
      // Asked again.
    }
    setTimeout(follow, 2000);
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
    if (wanted && wanted !== here) {
      location.replace(wanted);
      return;
    }
    const isKept = here === frame.entry || bar.pathname.endsWith(location.pathname);
    history.replaceState(history.state, "", bar.pathname + bar.search + (isKept ? "" : `#${here}`));
  }
  function ourPlace(text) {
    if (!text.startsWith(root) || !URL.canParse(text, location.origin)) return null;
    const { pathname, search } = new URL(text, location.origin);
    const isPage = pathname.startsWith(root) && !/^(api|assets|metrics)\b/.test(pathname.slice(root.length));
    return isPage ? pathname + search : null;
  }

  const root = new URL("..", document.currentScript.src).pathname;
  const airflow = themeOfAirflow();
  if (airflow) {
    const wearIts = () => wear(airflow.classList.contains("dark"));
    new MutationObserver(wearIts).observe(airflow, { attributes: true, attributeFilter: ["class"] });
    wearIts();
    keepPlace();
  }
  document.addEventListener("click", leadOut);
  // Milliseconds since the page was asked for.
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
  setTimeout(follow, 2000);
})();
