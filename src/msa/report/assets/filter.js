"use strict";
const filter = document.getElementById("filter");
if (filter) {
  const rows = [...document.querySelectorAll("#rows tbody tr")];
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}
document.documentElement.dataset.ready = String(Math.round(performance.now()));
