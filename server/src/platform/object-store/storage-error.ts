/**
 * The archive's storage is unreachable or refuses the operation. The message is a sentence for people and
 * contains no secrets. `cause` keeps the original error of the storage or the system.
 */
export class StorageError extends Error {
  override name = 'StorageError'
  /** The object exists, but has to be restored before it can be read. */
  readonly isCold: boolean
  /** The storage denied this node permission for the operation. */
  readonly isDenied: boolean
  /** The storage doesn't exist, such as a folder before the first write, or without its disk. */
  readonly isAbsent: boolean
  /** The object has more bytes than the caller accepts. */
  readonly isTooLarge: boolean
  /** A message for customers, without the storage's location or error. */
  readonly summary: string

  constructor(
    message: string,
    {
      cause,
      isCold = false,
      isDenied = false,
      isAbsent = false,
      isTooLarge = false,
      summary = 'The storage of the archive did not answer as it should.',
    }: {
      cause?: unknown
      isCold?: boolean
      isDenied?: boolean
      isAbsent?: boolean
      isTooLarge?: boolean
      summary?: string
    } = {},
  ) {
    super(message, { cause })
    this.isCold = isCold
    this.isDenied = isDenied
    this.isAbsent = isAbsent
    this.isTooLarge = isTooLarge
    this.summary = summary
  }
}
