/** Addresses: of clients behind proxies, of networks that customers must not reach through the server, and of web pages that may call it. */
import { lookup as systemLookup } from "node:dns"
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction } from "node:net"

/** The proxies whose X-Forwarded-For is believed. */
export interface TrustedProxies {
  /** How many stand in front of this server, whatever their addresses. */
  readonly hops: number
  readonly networks: BlockList | null
}

export const noProxies: TrustedProxies = { hops: 0, networks: null }

const hopsMax = 16

/** A number of hops, or addresses and networks separated by commas. Null when it is neither. */
export function parseTrustedProxies(text: string): TrustedProxies | null {
  const given = text.trim()
  if (given === "") return noProxies
  if (/^\d{1,2}$/.test(given))
    return Number(given) <= hopsMax ? { hops: Number(given), networks: null } : null
  const networks = new BlockList()
  for (const part of given.split(",")) if (!addNetwork(networks, part.trim())) return null
  return { hops: 0, networks }
}

/** Null when one of them is no address or network. */
export function parseNetworks(texts: readonly string[]): BlockList | null {
  const networks = new BlockList()
  return texts.every((text) => addNetwork(networks, text)) ? networks : null
}

export const containsAddress = (networks: BlockList, address: string): boolean =>
  contains(networks, plainAddress(address) ?? address)

function addNetwork(networks: BlockList, text: string): boolean {
  const [address = "", length, ...rest] = text.split("/")
  const bits = isIPv4(address) ? 32 : 128
  if (isIP(address) === 0 || rest.length > 0) return false
  if (length !== undefined && !(/^\d{1,3}$/.test(length) && Number(length) <= bits)) return false
  networks.addSubnet(address, Number(length ?? bits), familyOf(address))
  return true
}

/**
 * The address that a request came from. Each proxy appends the address it was called from, so the list is read from its
 * right end, which a client cannot write, and only past proxies that are trusted.
 */
export function clientAddress(peer: string, forwarded: string | undefined, trusted: TrustedProxies): string {
  let client = plainAddress(peer) ?? peer
  if (forwarded === undefined || (trusted.hops === 0 && !trusted.networks)) return client
  const listed = forwarded.split(",")
  for (let hop = 1; hop <= listed.length; hop++) {
    const isTrusted = trusted.networks ? contains(trusted.networks, client) : hop <= trusted.hops
    const next = isTrusted ? plainAddress(listed[listed.length - hop] ?? "") : null
    if (next === null) return client
    client = next
  }
  return client
}

export function isTrustedPeer(peer: string, { hops, networks }: TrustedProxies): boolean {
  return networks ? contains(networks, plainAddress(peer) ?? peer) : hops > 0
}

const contains = (networks: BlockList, address: string): boolean =>
  isIP(address) !== 0 && networks.check(address, familyOf(address))

const familyOf = (address: string): "ipv4" | "ipv6" => (isIPv6(address) ? "ipv6" : "ipv4")

/** Without brackets, port, zone and the prefix of an IPv4 address in IPv6; null when it is no address. */
function plainAddress(text: string): string | null {
  const given = text.trim()
  if (isIPv4(given)) return given
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(given) ?? []
  const [, beforePort] = /^([\d.]+):\d+$/.exec(given) ?? []
  const address = (bracketed ?? beforePort ?? given).split("%")[0] ?? ""
  const [, mapped] = /^::ffff:([\d.]+)$/i.exec(address) ?? []
  const plain = mapped ?? address
  return isIP(plain) === 0 ? null : plain.toLowerCase()
}

/** What limits count by: an IPv4 address, or the /64 of an IPv6 address, all of which one client can have. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const [head = "", tail] = address.split("::")
  const groups = head === "" ? [] : head.split(":")
  const last = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = tail === undefined ? 0 : 8 - groups.length - last.length
  const all = [...groups, ...Array.from({ length: Math.max(0, zeros) }, () => "0"), ...last]
  return `${all
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":")}::/64`
}

/** An address that a customer chose is private, or is public where only a private one is allowed. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused"
}

/** The host of a URL where it is an address and no name: such a host never reaches a lookup. */
export function literalAddress(url: URL): string | null {
  const host = url.hostname.replace(/^\[|\]$/g, "")
  return isIP(host) === 0 ? null : host
}

/** Checks the addresses that the connection is about to use, so that a name cannot change its meaning in between. */
export function lookupWhere(isAllowed: (address: string) => boolean, refusal: string): LookupFunction {
  return (hostname, options, done) => {
    systemLookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, "", 0)
      if (!addresses.every(({ address }) => isAllowed(address)))
        return done(new AddressRefused(refusal), "", 0)
      if (options.all) return done(null, addresses)
      const [first] = addresses
      done(null, first?.address ?? "", first?.family ?? 0)
    })
  }
}

export function isPrivate(address: string): boolean {
  return notPublic.check(address, isIPv6(address) ? "ipv6" : "ipv4")
}

/** The special-purpose ranges of IANA's registries that are not reachable, or not meant to be, over the internet. */
const notPublic = new BlockList()
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const)
  notPublic.addSubnet(network, prefix, "ipv4")
for (const [network, prefix] of [
  // IPv4 in IPv6, as it was once written, "::1" among them, and behind translators; an address mapped as ::ffff:0:0/96 is held to
  // the rules above.
  ["::", 96],
  ["::ffff:0:0:0", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2002::", 16],
  ["100::", 64],
  ["2001::", 23],
  ["2001:db8::", 32],
  ["3fff::", 20],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
] as const)
  notPublic.addSubnet(network, prefix, "ipv6")

/** Where clouds tell their machines secrets: nothing else answers there, and no model. */
const metadata = new BlockList()
metadata.addSubnet("169.254.0.0", 16, "ipv4")
metadata.addAddress("100.100.100.200", "ipv4")
metadata.addSubnet("fd00:ec2::", 32, "ipv6")

export const isCloudMetadata = (address: string): boolean => metadata.check(address, familyOf(address))

const loopbackHosts = new Set(["localhost", "127.0.0.1", "[::1]"])

/** The origins of a list separated by commas; null where one is none. */
export function parseOrigins(list: string): string[] | null {
  const given = list
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "")
  const origins = given.map(originOf)
  return origins.every((one) => one !== null) ? origins : null
}

/**
 * Which web pages may call an endpoint that reads no cookies: those of this machine, of the server, and those that are listed.
 * `publicUrl` is known once the server listens.
 */
export function originCheck(
  allowed: readonly string[],
  publicUrl: () => string,
): (origin: string) => boolean {
  return (given) => {
    const origin = originOf(given)
    if (origin === null) return false
    return (
      loopbackHosts.has(new URL(origin).hostname) ||
      origin === originOf(publicUrl()) ||
      allowed.includes(origin)
    )
  }
}

/** Null for what is no origin of a page: "null" of a sandboxed one too. */
function originOf(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { origin, protocol } = new URL(text)
  return protocol === "http:" || protocol === "https:" ? origin : null
}
