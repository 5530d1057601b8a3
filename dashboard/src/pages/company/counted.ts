import { formatCount } from '../../parts/format.ts'

/** "1 key", "2 keys". */
export function counted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}
