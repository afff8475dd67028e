/** Which network addresses are public: requests to addresses that customers choose must not reach into the house. */
import { lookup as systemLookup } from "node:dns"
import { BlockList, type LookupFunction, isIP, isIPv6 } from "node:net"

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
