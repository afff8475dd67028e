/** Client addresses: which one a request came from behind proxies, and the network that limits count it under. */
import { BlockList, isIP, isIPv4, isIPv6 } from "node:net"

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
