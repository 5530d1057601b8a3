import type { ComponentProps } from 'react'
import { Icon } from '../../../parts/Icon.tsx'
import classes from './FilterBar.module.css'

export function AddFilterButton(props: ComponentProps<'button'>) {
  return (
    <button {...props} type="button" className={classes.add} aria-haspopup="listbox">
      <Icon name="plus" size={11} />
      Add filter
    </button>
  )
}
