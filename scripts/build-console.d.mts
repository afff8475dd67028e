/** Builds the console when its sources have changed since the last time. */
export function buildConsole(): void
