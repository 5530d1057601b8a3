import { formatCount } from './format.ts'

/** For example "1 key" or "2 keys". */
export function pluralize(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}
