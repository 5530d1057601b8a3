/**
 * The archive's storage is out of reach or refuses: a sentence for people, free of secrets. What
 * the storage or the system said is kept in `cause`.
 */
export class StorageError extends Error {
  override name = 'StorageError'
  /** The object is there, and has to be restored before it can be read. */
  readonly isCold: boolean
  /** The storage answered that this node may not do it. */
  readonly isDenied: boolean
  /** A message for customers, without the storage's location or error. */
  readonly summary: string

  constructor(
    message: string,
    {
      cause,
      isCold = false,
      isDenied = false,
      summary = 'The storage of the archive did not answer as it should.',
    }: { cause?: unknown; isCold?: boolean; isDenied?: boolean; summary?: string } = {},
  ) {
    super(message, { cause })
    this.isCold = isCold
    this.isDenied = isDenied
    this.summary = summary
  }
}
