import { AnnalsError } from './errors.ts'

/** A page of a list. `nextCursor` is null on the last page. */
export type Page<Item> = { data: readonly Item[]; nextCursor: string | null }

/**
 * A list that is read page by page while you iterate over it. Each loop starts at the first page.
 *
 * ```ts
 * for await (const event of annals.events.list({ category: ['auth'] })) show(event)
 * ```
 */
export class Pages<Item, ItemPage extends Page<Item> = Page<Item>> implements AsyncIterable<Item> {
  readonly #read: (cursor: string | undefined) => Promise<ItemPage>
  readonly #start: string | undefined

  constructor(read: (cursor: string | undefined) => Promise<ItemPage>, start?: string) {
    this.#read = read
    this.#start = start
  }

  /** Whole pages, for callers that store `nextCursor`. A page can be empty although more follow. */
  async *pages(): AsyncGenerator<ItemPage, void, undefined> {
    let cursor: string | null | undefined = this.#start
    do {
      const page: ItemPage = await this.#read(cursor)
      checkItems(page?.data)
      yield page
      if (page.nextCursor === cursor) throw repeatedCursor('nextCursor')
      cursor = page.nextCursor
    } while (cursor !== null)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const { data } of this.pages()) yield* data
  }

  /** The first `count` items, or fewer if there are no more. */
  async take(count: number): Promise<Item[]> {
    const items: Item[] = []
    if (count <= 0) return items
    for await (const item of this) {
      items.push(item)
      if (items.length >= count) break
    }
    return items
  }
}

/** What the service sends always passes. Another server behind `baseUrl` can respond with any JSON. */
export function checkItems(list: unknown, count?: number): void {
  const isList = Array.isArray(list) && list.every((item) => item && typeof item === 'object')
  if (isList && list.length === (count ?? list.length)) return
  const found = isList ? `${list.length} results instead of ${count}` : 'no list of objects'
  throw new AnnalsError(`The response has ${found}. Check baseUrl and proxies.`, {
    code: 'unexpected_response',
  })
}

export function repeatedCursor(name: string): AnnalsError {
  const message = `The ${name} of a page leads back to the same page. Check baseUrl and proxies.`
  return new AnnalsError(message, { code: 'repeated_cursor' })
}
