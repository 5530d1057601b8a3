import { networkOf } from '../client-address.ts'

const ACCOUNTS_MAX = 10_000
const NETWORKS_PER_ACCOUNT_MAX = 5

type Place = { address: string; account?: string }

/**
 * The networks from which each account has signed in last, since the process started. An account that signs in
 * from many networks replaces only its own.
 */
export class KnownNetworks {
  /** The account that signed in least recently is first. */
  readonly #networks = new Map<string, readonly string[]>()

  has({ address, account = '' }: Place): boolean {
    return this.#networks.get(account.toLowerCase())?.includes(networkOf(address)) === true
  }

  add({ address, account }: Place): void {
    if (account === undefined) return
    const name = account.toLowerCase()
    const network = networkOf(address)
    const others = (this.#networks.get(name) ?? []).filter((other) => other !== network)
    this.#networks.delete(name)
    this.#networks.set(name, [network, ...others].slice(0, NETWORKS_PER_ACCOUNT_MAX))
    if (this.#networks.size <= ACCOUNTS_MAX) return
    const [oldest] = this.#networks.keys()
    if (oldest !== undefined) this.#networks.delete(oldest)
  }
}
