/** Colors of series, told apart also by those who see fewer colors (after Okabe and Ito), fit for light and dark. */
export const seriesColors = [
  "#2f9d7c",
  "#3a7fd0",
  "#d9822b",
  "#b05ea8",
  "#8a9a1f",
  "#c9503c",
  "#4aa8b8",
  "#7a6fd0",
  "#a07a4a",
  "#5b8c5a",
  "#c7618f",
  "#6b7785",
  "#9aa0a6",
] as const
