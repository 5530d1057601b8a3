import type { ReactNode } from 'react'
import rows from './DataTable.module.css'

/** A list as a table. On a phone each row is a card. The last column contains the actions. */
export function DataTable({
  label,
  columns,
  lastColumn = 'Actions',
  className = '',
  children,
}: {
  label: string
  columns: readonly string[]
  /** The name of the last column, for screen readers only. */
  lastColumn?: string
  className?: string | undefined
  children: ReactNode
}) {
  return (
    <table className={`${rows.table} ${className}`} aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th scope="col" key={column}>
              {column}
            </th>
          ))}
          <th scope="col">
            <span className={rows.hidden}>{lastColumn}</span>
          </th>
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  )
}
