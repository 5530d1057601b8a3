import type { FastifyRequest } from 'fastify'
import type { AddressRanges } from '../../tenancy/allowlist.ts'
import { clientAddress } from './client-address.ts'

const ADDRESSES_MAX = 10_000

/** Reads the address of a request's caller, through trusted proxies. */
export class ClientAddresses {
  readonly #trustedProxies: AddressRanges
  /** By the socket's spelling. Most calls come from few addresses, and parsing one is slow. */
  readonly #known = new Map<string, string>()

  constructor(trustedProxies: AddressRanges) {
    this.#trustedProxies = trustedProxies
  }

  of({ socket, headers }: Pick<FastifyRequest, 'socket' | 'headers'>): string {
    const peer = socket.remoteAddress ?? ''
    const forwardedFor = this.#trustedProxies.length > 0 ? headers['x-forwarded-for'] : undefined
    const known = forwardedFor === undefined ? this.#known.get(peer) : undefined
    if (known !== undefined) return known
    const address = clientAddress(peer, forwardedFor, this.#trustedProxies)
    if (this.#known.size >= ADDRESSES_MAX) this.#known.clear()
    if (forwardedFor === undefined) this.#known.set(peer, address)
    return address
  }
}
