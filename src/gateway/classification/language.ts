/** Whether a text is mostly in a language that the shipped decision models have not learnt; they know English alone. */

/** Of a long text the beginning tells. */
const CHARACTERS_MAX = 4_000
/** Fewer words tell nothing: a name, a code. */
const WORDS_MIN = 4
const WORD = /\p{L}+/gu
const LATIN = /^\p{Script=Latin}/u

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "))
const ENGLISH = words(
  "the of and to in is a an for it that you i not on with this my was are be have has had we he she they at as by from or but if what how when who which can will would do does did please there their your our its no yes been were about than then",
)
/** The commonest of the larger languages in Latin letters, without those that English has too. */
const OTHERS = words(
  "der die das und ist nicht ich ein eine zu mit den auf für von sie wir es wie auch dem im le la les et est pas je un une des du pour que qui dans vous nous il elle sur avec au ne ce el los las y es una por con para se lo del su pero como muy al está de het een niet van voor met maar ik zijn di che non per sono mi o os não um uma com eu em na foi och att det som är jag inte på w nie się jest do z że to ve bir bu için çok da ne değil og ikke jeg dan yang tidak ini itu của và là không",
)

/** True where most letters are of another script, or most words that every text has are of other languages. */
export function isForeign(text: string): boolean {
  const found = text.slice(0, CHARACTERS_MAX).toLowerCase().match(WORD) ?? []
  const latin = found.filter((word) => LATIN.test(word))
  if (letters(latin) * 2 < letters(found)) return true
  if (latin.length < WORDS_MIN) return false
  const english = latin.filter((word) => ENGLISH.has(word)).length
  const other = latin.filter((word) => OTHERS.has(word) && !ENGLISH.has(word)).length
  return other > 1 && other > 2 * english
}

const letters = (some: readonly string[]): number => some.reduce((sum, word) => sum + word.length, 0)
