/** Light, dark, or as the system prefers; remembered in this browser. */
import { useSyncExternalStore } from "react"

export const themes = ["system", "light", "dark"] as const
type Theme = (typeof themes)[number]

/** The script in the head of the page reads the same entry. */
const entry = "umpire.theme"
const system = matchMedia("(prefers-color-scheme: dark)")
const watchers = new Set<() => void>()

function readTheme(): Theme {
  const stored = localStorage.getItem(entry)
  return stored === "light" || stored === "dark" ? stored : "system"
}

export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(entry)
  else localStorage.setItem(entry, theme)
  apply()
}

function apply(): void {
  const theme = readTheme()
  const dark = theme === "dark" || (theme === "system" && system.matches)
  document.documentElement.dataset["theme"] = dark ? "dark" : "light"
  for (const watcher of watchers) watcher()
}

system.addEventListener("change", apply)

const watch = (watcher: () => void): (() => void) => {
  watchers.add(watcher)
  return () => void watchers.delete(watcher)
}

export const useTheme = (): Theme => useSyncExternalStore(watch, readTheme)

/** Charts draw on a canvas and must be told. */
export const useDark = (): boolean =>
  useSyncExternalStore(watch, () => document.documentElement.dataset["theme"] === "dark")
