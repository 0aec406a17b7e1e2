// What scrolls inside its box is reached by the Tab key, and then by the arrows; tables are, code is already.
addEventListener("load", () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) box.tabIndex = 0;
});
