/** A user agent in words, such as "Chrome on Linux". */
import { t } from "../i18n/translate.ts"

/** The first that fits: others name themselves after those below them. */
const browsers: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, "Edge"],
  [/\b(?:OPR|Opera)\//, "Opera"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Chrome|HeadlessChrome|CriOS|Chromium)\//, "Chrome"],
  [/\bVersion\/\S+.*\bSafari\//, "Safari"],
]

const systems: readonly (readonly [RegExp, string])[] = [
  [/\b(?:iPhone|iPad|iPod)\b/, "iOS"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b|\bMacintosh\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
]

const charactersMax = 60

/** What is no browser is shown as it calls itself, shortened. */
export function browserName(userAgent: string): string {
  const name = browsers.find(([form]) => form.test(userAgent))?.[1]
  const system = systems.find(([form]) => form.test(userAgent))?.[1]
  if (name) return system ? t("{name} on {system}", { name, system }) : name
  return userAgent.length > charactersMax ? `${userAgent.slice(0, charactersMax)}…` : userAgent
}
