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

  // The style shows one tab by the address; its link says that it is this one.
  function markTab() {
    const shown = [...document.querySelectorAll(".tab")].find((each) => each.checkVisibility());
    for (const link of document.querySelectorAll(".tabs a")) {
      const place = document.getElementById(link.hash.slice(1));
      link.toggleAttribute("aria-current", Boolean(shown?.contains(place)));
    }
  }

  const airflow = themeOfAirflow();
  if (airflow) {
    const wearIts = () => wear(airflow.classList.contains("dark"));
    new MutationObserver(wearIts).observe(airflow, { attributes: true, attributeFilter: ["class"] });
    wearIts();
  }
  for (const moment of ["hashchange", "load"]) addEventListener(moment, markTab);
  // Milliseconds since the page was asked for.
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
  setTimeout(follow, 2000);
})();
