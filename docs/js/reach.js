// What scrolls inside its box is reached by the Tab key, and then by the arrows. The theme sees to code where a mouse is.
addEventListener("load", () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) box.tabIndex = 0;
  for (const code of document.querySelectorAll("pre > code"))
    if (code.scrollWidth > code.clientWidth) code.tabIndex = 0;
});
