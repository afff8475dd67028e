/** Builds the console when its sources have changed since the last time. */
export function buildConsole(): void
/** Whether what was built was built from the sources as they are. */
export function isBuilt(folder: string): boolean
