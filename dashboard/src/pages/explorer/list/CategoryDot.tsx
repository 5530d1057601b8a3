import { colorOf } from '../../../parts/chart/name-color.ts'
import classes from './EventList.module.css'

/** Has the color that the category has in charts. Screen readers have the category in its column or panel. */
export function CategoryDot({ category }: { category: string }) {
  const background = `light-dark(${colorOf('light', category)}, ${colorOf('dark', category)})`
  return <i className={classes.dot} style={{ background }} title={category} aria-hidden="true" />
}
