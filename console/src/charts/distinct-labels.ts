/** Labels of an axis: one that would repeat the label before it stays empty. */
export function distinctLabels(ticks: readonly number[], format: (tick: number) => string): string[] {
  const labels = ticks.map(format)
  return labels.map((label, index) => (label === labels[index - 1] ? "" : label))
}
