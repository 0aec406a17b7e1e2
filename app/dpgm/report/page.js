"use strict";
const box = document.getElementById("find");
if (box) {
  const cards = Array.from(document.querySelectorAll("[data-find]"));
  const told = document.getElementById("found");
  const look = () => {
    const wanted = box.value.trim().toLowerCase();
    let shown = 0;
    for (const card of cards) {
      card.hidden = !card.dataset.find.toLowerCase().includes(wanted);
      shown += card.hidden ? 0 : 1;
    }
    told.textContent = wanted ? `${shown} of ${cards.length}` : "";
  };
  box.parentElement.hidden = false;
  box.addEventListener("input", look);
  look();
}
