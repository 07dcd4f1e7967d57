"use strict";
(() => {
  const ROWS_AT_ONCE = 200;
  const FINDINGS_AT_ONCE = 200;

  const format = new Intl.NumberFormat("en");
  const number = (value) => value === null || value === undefined ? "?" : format.format(value).replace(/,/g, "\u2009");

  async function rest() {
    const packed = Uint8Array.from(atob(document.getElementById("rest").textContent), (each) => each.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  function cardOf(finding) {
    const card = document.getElementById("finding-card").content.firstElementChild.cloneNode(true);
    card.dataset.verdict = finding.verdict;
    for (const [name, text] of Object.entries(finding)) {
      const place = card.querySelector("." + name);
      place.textContent = text;
      if (name === "verdict") place.dataset.verdict = text;
    }
    return card;
  }
  function moreFindings(findings) {
    const button = document.getElementById("show-findings");
    if (!button) return;
    let shown = 0;
    button.addEventListener("click", () => {
      document.getElementById("more-findings").append(...findings.slice(shown, shown + FINDINGS_AT_ONCE).map(cardOf));
      shown += FINDINGS_AT_ONCE;
      button.hidden = shown >= findings.length;
      button.textContent = "Show more of " + number(findings.length - shown) + " others";
    });
  }

  function partitionTable(rows) {
    const body = document.getElementById("partition-rows"), button = document.getElementById("show-partitions");
    const filter = document.getElementById("partition-filter"), verdict = document.getElementById("verdict-filter");
    const said = document.getElementById("partition-count");
    for (const word of new Set(rows.map((row) => row[1]))) verdict.add(new Option(word, word));
    let found = rows, shown = body.rows.length;
    const rowOf = (cells) => {
      const row = document.createElement("tr");
      cells.forEach((text, place) => {
        const cell = row.insertCell();
        cell.textContent = text;
        if (place === 1) { cell.className = "verdict"; cell.dataset.verdict = text; }
      });
      return row;
    };
    const tell = () => {
      button.hidden = shown >= found.length;
      said.textContent = number(Math.min(shown, found.length)) + " of " + number(found.length) + " shown";
    };
    button.addEventListener("click", () => {
      body.append(...found.slice(shown, shown + ROWS_AT_ONCE).map(rowOf));
      shown += ROWS_AT_ONCE;
      tell();
    });
    const search = () => {
      const wanted = filter.value.trim();
      found = rows.filter((row) => (!wanted || row[0].startsWith(wanted)) && (!verdict.value || row[1] === verdict.value));
      shown = ROWS_AT_ONCE;
      body.replaceChildren(...found.slice(0, shown).map(rowOf));
      tell();
    };
    filter.addEventListener("input", search);
    verdict.addEventListener("change", search);
    tell();
  }

  async function open() {
    const {findings, partitions} = await rest();
    moreFindings(findings);
    partitionTable(partitions);
    // Milliseconds since the page was asked for: what bench/report_page.py reads.
    document.documentElement.dataset.ready = Math.round(performance.now());
  }
  open();
})();
