/** The software bill of materials (CycloneDX 1.6) of the runtime packages, and which of their licences are permitted. */
import { type LockedPackages, packageName } from "./locked-packages.ts"

/** Permissive licences, by SPDX identifier; OFL-1.1 is for fonts, which are shipped unchanged. */
export const permittedLicences: readonly string[] = [
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "Bitstream-Vera",
  "BlueOak-1.0.0",
  "CC0-1.0",
  "ISC",
  "MIT",
  "MIT-0",
  "OFL-1.1",
]

/** Packages whose package.json does not name the licence that their licence file has. */
const licencesRead: Readonly<Record<string, string>> = {
  "dejavu-fonts-ttf": "Bitstream-Vera",
  "png-js": "MIT",
}

export const licenceOf = (name: string, stated: string | undefined): string | undefined =>
  licencesRead[name] ?? stated

/** Whether an SPDX expression of AND and OR can be met by permitted licences alone. */
export function isPermitted(licence: string | undefined): boolean {
  if (licence === undefined) return false
  const flat = licence.replaceAll(/[()]/g, "")
  return flat
    .split(" OR ")
    .some((choice) => choice.split(" AND ").every((one) => permittedLicences.includes(one.trim())))
}

interface Product {
  readonly name: string
  readonly version: string
  readonly license: string
}

interface Component {
  readonly type: "library"
  readonly "bom-ref": string
  readonly name: string
  readonly version: string
  readonly scope: "optional" | "required"
  readonly hashes: readonly { readonly alg: string; readonly content: string }[]
  readonly licenses: readonly { readonly expression: string }[]
  readonly purl: string
}

interface BillOfMaterials {
  readonly bomFormat: "CycloneDX"
  readonly specVersion: "1.6"
  readonly version: 1
  readonly metadata: { readonly component: object }
  readonly components: readonly Component[]
}

export function billOfMaterials(product: Product, packages: LockedPackages): BillOfMaterials {
  const components = Object.entries(packages).map(([place, entry]): Component => {
    const name = entry.name ?? packageName(place)
    const version = entry.version ?? ""
    const licence = licenceOf(name, entry.license)
    return {
      type: "library",
      "bom-ref": place,
      name,
      version,
      scope: entry.optional === true ? "optional" : "required",
      hashes: entry.integrity === undefined ? [] : [hashOf(entry.integrity)],
      licenses: licence === undefined ? [] : [{ expression: licence }],
      purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
    }
  })
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": product.name,
        name: product.name,
        version: product.version,
        licenses: [{ expression: product.license }],
      },
    },
    components,
  }
}

/** npm writes `sha512-<base64>`; CycloneDX wants hexadecimal. */
function hashOf(integrity: string): { alg: string; content: string } {
  const [algorithm = "", digest = ""] = integrity.split("-", 2)
  return {
    alg: algorithm === "sha512" ? "SHA-512" : "SHA-1",
    content: Buffer.from(digest, "base64").toString("hex"),
  }
}
