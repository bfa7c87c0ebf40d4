"use strict";
(() => {
  const data = JSON.parse(document.getElementById("capture").textContent);
  const tip = document.getElementById("tip");
  const picture = document.getElementById("timeline");
  const filter = document.getElementById("filter");
  const bytes = (n) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    while (n >= 1024 && i < units.length - 1) { n /= 1024; i += 1; }
    return `${n.toFixed(i ? 2 : 0)} ${units[i]}`;
  };
  if (picture) {
    picture.addEventListener("mousemove", (event) => {
      const box = picture.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      const k = Math.min(data.columns.length - 1, Math.max(0, Math.floor(share * data.columns.length)));
      const [step, value] = data.columns[k];
      tip.textContent = `step ${step} ${data.names[k]}: ${bytes(value)}`;
      tip.style.display = "block";
      tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - 260)}px`;
      tip.style.top = `${event.clientY + 12}px`;
    });
    picture.addEventListener("mouseleave", () => { tip.style.display = "none"; });
  }
  if (filter) {
    const rows = [...document.querySelectorAll("#at-peak tbody tr")];
    filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
})();
