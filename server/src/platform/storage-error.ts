/**
 * The archive's storage is out of reach or refuses: a sentence for people, free of secrets. What
 * the storage or the system said is kept in `cause`.
 */
export class StorageError extends Error {
  override name = 'StorageError'
  /** The object is there, and has to be restored before it can be read. */
  readonly isCold: boolean

  constructor(
    message: string,
    { cause, isCold = false }: { cause?: unknown; isCold?: boolean } = {},
  ) {
    super(message, { cause })
    this.isCold = isCold
  }
}
