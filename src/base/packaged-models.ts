/** Models that come with Umpire as npm packages of their own, under their names. */
const packagedModels: readonly string[] = ["umpire-decide-multilingual"]

export const isPackagedModel = (sku: string): boolean => packagedModels.includes(sku)

/** How to get a model that is not there; null of one that is no package. */
export const installAdvice = (sku: string): string | null =>
  isPackagedModel(sku) ? `npm install ${sku} where umpire is installed adds it` : null
