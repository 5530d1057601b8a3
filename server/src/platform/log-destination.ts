import {
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs'
import { isatty } from 'node:tty'

/** The interval between attempts to write the rest of a text. */
const RETRY_MS = 100
/** The maximum size of text that waits to be written. */
const WAITING_BYTES_MAX = 1_000_000

type Format = {
  /** The line that reports dropped lines. */
  noticeOf: (lines: number) => string
  /** What is written for a line. By default, the line itself. */
  format?: (line: string) => string
}

/**
 * Where log lines go. Each line is written immediately or dropped: a full disk, a full pipe, a paused
 * terminal or a reader that is gone must neither block the service nor keep it from stopping. Dropped lines
 * are counted, and a notice with their number precedes the next line that can be written.
 */
export class LogDestination {
  readonly #open: () => number
  readonly #noticeOf: (lines: number) => string
  readonly #format: (line: string) => string
  #fd: number | null = null
  /**
   * The rest of a text that a pipe or a terminal accepted only in part. It is written before anything else.
   */
  #rest: Buffer | null = null
  #retry: NodeJS.Timeout | null = null
  #dropped = 0
  #unreported = 0

  /** `open` is called for the first line and returns a non-blocking descriptor. */
  constructor(open: () => number, { noticeOf, format = (line) => line }: Format) {
    this.#open = open
    this.#noticeOf = noticeOf
    this.#format = format
  }

  /** Lines dropped so far. */
  get dropped(): number {
    return this.#dropped
  }

  write(line: string): void {
    const isReady = this.#finishRest() && this.#report()
    if (!isReady || this.#writeSome(this.#format(line)) !== 'written') this.#drop()
  }

  /**
   * Prints text for a person, such as keys that are shown only once. If the output is full, the text waits.
   */
  print(text: string): void {
    const outcome = this.#finishRest() ? this.#writeSome(text) : 'full'
    if (outcome === 'written') return
    const waiting = Buffer.concat([this.#rest ?? Buffer.alloc(0), Buffer.from(text)])
    if (outcome === 'full' && waiting.length <= WAITING_BYTES_MAX) this.#setRest(waiting)
    else this.#drop()
  }

  #drop(): void {
    this.#dropped += 1
    this.#unreported += 1
  }

  /** Returns true if nothing of the earlier text is left. */
  #finishRest(): boolean {
    if (this.#rest !== null) this.#writeSome(this.#rest)
    return this.#rest === null
  }

  #report(): boolean {
    if (this.#unreported === 0) return true
    const notice = this.#format(this.#noticeOf(this.#unreported))
    if (this.#writeSome(notice) !== 'written') return false
    this.#unreported = 0
    return this.#rest === null
  }

  /** Writes as much as fits and keeps the rest. `full` and `failed` mean that nothing was written. */
  #writeSome(text: string | Buffer): 'written' | 'full' | 'failed' {
    const bytes = Buffer.from(text)
    try {
      const written = writeSync((this.#fd ??= this.#open()), bytes)
      if (written === 0) return 'full'
      this.#setRest(written < bytes.length ? bytes.subarray(written) : null)
      return 'written'
    } catch (error) {
      const isFull = error instanceof Error && 'code' in error && error.code === 'EAGAIN'
      return isFull ? 'full' : 'failed'
    }
  }

  #setRest(rest: Buffer | null): void {
    this.#rest = rest
    if (rest === null) {
      if (this.#retry !== null) clearInterval(this.#retry)
      this.#retry = null
    } else {
      // An idle service writes no next line that would trigger this.
      this.#retry ??= setInterval(() => this.#finishRest(), RETRY_MS).unref()
    }
  }
}

/**
 * A descriptor for the same file on which writing to a full pipe or a paused terminal fails instead of
 * blocking. The file is opened again, because the flag belongs to the open file, which other processes may
 * share. Sockets can't be opened again; Node makes them non-blocking when it opens `process.stdout`.
 */
export function openNonBlocking(fd: number): number {
  for (const path of pathsOf(fd)) {
    try {
      return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    } catch {
      // Try the next path, or else use the descriptor itself.
    }
  }
  return fd
}

/** The paths for opening a pipe or a terminal again. Other files don't need the flag. */
function pathsOf(fd: number): string[] {
  const ownPath = `/proc/self/fd/${fd}`
  if (!isatty(fd)) return statOf(fd)?.isFIFO() ? [ownPath] : []
  // After `su`, the terminal's file belongs to another user, but its session can open it as /dev/tty.
  if (isControllingTerminal(fd)) return [ownPath, '/dev/tty']
  return [ownPath, ...terminalFilesOf(fd)]
}

/**
 * Whether /dev/tty is the same terminal: output can be redirected to another one. The file /dev/tty has a
 * device number of its own, so the terminal's number is read from Linux's process table, which encodes it
 * like `stat` does.
 */
function isControllingTerminal(fd: number): boolean {
  try {
    // The fields after the program's name, which can contain spaces: state, parent, group, session, tty.
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ')
    return Number(fields?.[4]) === statOf(fd)?.rdev
  } catch {
    return false
  }
}

/** The files of the terminal on systems without /proc, where they are in /dev itself. */
function terminalFilesOf(fd: number): string[] {
  const device = statOf(fd)?.rdev
  const isSame = (path: string): boolean => {
    try {
      return statSync(path).rdev === device
    } catch {
      return false
    }
  }
  try {
    const names = readdirSync('/dev').filter((name) => name.startsWith('tty'))
    return names.map((name) => `/dev/${name}`).filter(isSame)
  } catch {
    return []
  }
}

function statOf(fd: number): Stats | null {
  try {
    return fstatSync(fd)
  } catch {
    return null
  }
}
