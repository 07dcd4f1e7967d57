"use strict";
(() => {
  // Airflow's theme, where we stand in its frame; else the system's. The style knows the system's only.
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
    drawCoverage();
  }
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  let drawn = null;
  function drawCoverage() {
    const canvas = document.getElementById("coverage-map");
    if (!canvas || !drawn) return;
    const blocks = drawn.coverage.blocks, columns = drawn.coverage.edges.length - 1;
    canvas.width = Math.max(1, columns);
    canvas.height = Math.max(1, blocks.length);
    const pen = canvas.getContext("2d");
    blocks.forEach((block, row) => block.verdicts.forEach((verdict, column) => {
      pen.fillStyle = colour(verdict);
      pen.fillRect(column, row, 1, 1);
    }));
  }
  function tellCell(event) {
    const canvas = event.currentTarget, box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / box.width * canvas.width);
    const block = drawn && drawn.coverage.blocks[Math.floor((event.clientY - box.top) / box.height * canvas.height)];
    if (!block || column < 0 || column >= block.verdicts.length) return;
    const when = (place) => drawn.coverage.edges[place].slice(0, 16).replace("T", " ");
    const who = block.first_partition === block.last_partition
      ? "partition " + block.first_partition
      : "partitions " + block.first_partition + " to " + block.last_partition;
    document.getElementById("coverage-cell").textContent =
      when(column) + " to " + when(column + 1) + ", " + who + ": " + block.verdicts[column] + " (" + block.counts[column] + ")";
  }
  async function fetchCoverage() {
    const section = document.getElementById("coverage");
    if (!section) return;
    const said = document.getElementById("coverage-cell");
    try {
      const answer = await fetch(section.dataset.source, { credentials: "same-origin" });
      const found = await answer.json();
      if (!answer.ok) { said.textContent = found.detail; return; }
      drawn = found;
      drawCoverage();
      document.getElementById("coverage-map").addEventListener("pointermove", tellCell);
    } catch {
      said.textContent = "The coverage could not be read.";
    }
    document.documentElement.dataset.ready = String(performance.now());
  }

  const airflow = themeOfAirflow();
  if (airflow) {
    const follow = () => wear(airflow.classList.contains("dark"));
    new MutationObserver(follow).observe(airflow, { attributes: true, attributeFilter: ["class"] });
    follow();
  } else {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCoverage);
  }
  fetchCoverage();
})();
