export function count(value: number): string {
  return value.toLocaleString('en-US')
}

export function megabytes(bytes: number): string {
  return `${count(Math.round(bytes / 100_000) / 10)} MB`
}
