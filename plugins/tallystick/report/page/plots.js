"use strict";
// Says what a drawing shows under the pointer, or where the arrow keys have led.
for (const plane of document.querySelectorAll("svg.plane")) {
  const data = plane.dataset, said = document.getElementById(plane.getAttribute("aria-describedby"));
  const told = data.told ? data.told.split("|") : null;
  const edges = data.columns ? data.columns.split("|") : [], rows = data.rows ? data.rows.split("|") : [];
  const verdicts = (data.verdicts || "").split("|");
  const columns = told ? told.length : edges.length - 1;
  if (columns < 1 || !(told || rows.length)) continue;
  const cells = (data.cells || "").split("|").map((row) => row.split(",").flatMap((run) => {
    const [verdict, count, length] = run.split(/[:*]/);
    return Array(Number(length) || 0).fill([verdicts[verdict], count]);
  }));
  const offsets = (data.offsets || "").split("|").map((row) => row.split(","));
  const places = data.places ? data.places.split("|").map(Number) : null;
  const last = { column: columns - 1, row: told ? 0 : rows.length - 1 }, at = { column: last.column, row: 0 };
  const {width, height} = plane.viewBox.baseVal, mark = plane.querySelector(".chosen");

  function choose(column, row) {
    at.column = Math.min(Math.max(0, column), last.column);
    at.row = Math.min(Math.max(0, row), last.row);
    const wide = places ? 0 : width / columns, tall = told ? height : height / rows.length;
    mark.setAttribute("x", places ? places[at.column] : at.column * wide);
    mark.setAttribute("y", at.row * tall);
    mark.setAttribute("width", wide || .01);
    mark.setAttribute("height", tall);
    if (told) { said.textContent = told[at.column]; return; }
    const [verdict, count] = cells[at.row][at.column], [first, until] = rows[at.row].split("-").map(Number);
    const whole = until === undefined ? 1 : until - first + 1;
    const who = whole === 1 ? "partition " + first : "partitions " + first + " to " + until;
    const many = whole === 1 ? "" : " (" + count + " of them)";
    const ends = offsets[at.row], end = ends[at.column], begin = at.column ? ends[at.column - 1] : "the first";
    const range = end && begin ? ", offsets from " + begin + " to before " + end : "";
    said.textContent = edges[at.column] + " to " + edges[at.column + 1] + ", " + who + range + ": " + verdict + many;
  }
  function nearest(x) {
    return places.reduce((best, each, place) => Math.abs(each - x) < Math.abs(places[best] - x) ? place : best, 0);
  }
  function point(event) {
    const box = plane.getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width, down = (event.clientY - box.top) / box.height;
    choose(places ? nearest(across * width) : Math.floor(across * columns), Math.floor(down * rows.length));
  }
  plane.addEventListener("pointermove", point);
  plane.addEventListener("pointerdown", point);
  plane.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-columns, 0], End: [columns, 0] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    choose(at.column + step[0], at.row + step[1]);
  });
}
