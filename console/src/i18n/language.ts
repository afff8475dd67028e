/** Which language the console speaks: the choice kept in this browser, else the first of the browser's that it has. */
import { type Catalog, setLanguage } from "./translate.ts"

/** In their own words, for the menu. A language needs a catalog of its code, but for English: its texts are the keys. */
export const languages = {
  en: "English",
  de: "Deutsch",
  es: "Español",
  fr: "Français",
  ja: "日本語",
  ko: "한국어",
  zh: "简体中文",
} as const
export type Language = keyof typeof languages

/** In the order of the menu. */
export const languageNames = Object.entries(languages) as readonly (readonly [Language, string])[]

const entry = "umpire.language"
const rightToLeft = /^(?:ar|fa|he|ur)\b/

const isLanguage = (code: string): code is Language => Object.hasOwn(languages, code)

/** “de-AT” is answered in German; a browser that asks for nothing that is there gets English. */
export function languageFor(chosen: string | null, wanted: readonly string[]): Language {
  const codes = [chosen, ...wanted].map((one) => one?.split("-", 1)[0]?.toLowerCase() ?? "")
  return codes.find(isLanguage) ?? "en"
}

export const chosenLanguage = (): Language | null => {
  const stored = localStorage.getItem(entry)
  return stored !== null && isLanguage(stored) ? stored : null
}

/** Null: as the browser prefers. Texts are made when modules are loaded, so the page is loaded again. */
export function chooseLanguage(language: Language | null): void {
  if (language === null) localStorage.removeItem(entry)
  else localStorage.setItem(entry, language)
  location.reload()
}

/** To be awaited before anything else of the console is imported. */
export async function loadLanguage(): Promise<void> {
  const language = languageFor(chosenLanguage(), navigator.languages)
  const catalog = language === "en" ? {} : await loadCatalog(language)
  // Without its catalog a page is in English, and says so.
  const spoken = catalog ? language : "en"
  setLanguage(spoken, catalog ?? {})
  document.documentElement.lang = spoken
  document.documentElement.dir = rightToLeft.test(spoken) ? "rtl" : "ltr"
}

async function loadCatalog(language: Language): Promise<Catalog | null> {
  try {
    // The form of a catalog is checked by a test.
    const { default: catalog } = (await import(`./catalogs/${language}.json`)) as { default: Catalog }
    return catalog
  } catch {
    return null
  }
}
