/** Copies texts into an array, because reading a character of a part of a larger text takes several times as long. */
export class TextUnits {
  #units: Uint16Array
  #bytes: Buffer

  constructor(capacity = 4_096) {
    this.#units = new Uint16Array(capacity)
    this.#bytes = Buffer.from(this.#units.buffer)
  }

  /** The text is at the start of the result, until the next call. */
  of(text: string): Uint16Array {
    if (text.length > this.#units.length) {
      this.#units = new Uint16Array(text.length * 2)
      this.#bytes = Buffer.from(this.#units.buffer)
    }
    this.#bytes.write(text, 'utf16le')
    return this.#units
  }
}
