/** Chooses light or dark before the first paint: what the user chose here, or what the system prefers. */
;(() => {
  const chosen = localStorage.getItem("umpire.theme")
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches)
  document.documentElement.dataset.theme = dark ? "dark" : "light"
})()
