/** Regions: the named places where inference can run. */

export interface Region {
  readonly id: string
  /** ISO 3166-1, two letters. */
  readonly country: string
  readonly latitude: number
  readonly longitude: number
}

/** What an installation has that names none. Its country is no country's: ZZ is set aside for private use. */
export const localRegion: Region = { id: "local", country: "ZZ", latitude: 0, longitude: 0 }

/** Those an organization sees; null means all. */
export function visibleRegions(
  regions: readonly Region[],
  visible: readonly string[] | null,
): readonly Region[] {
  return visible === null ? regions : regions.filter(({ id }) => visible.includes(id))
}
