import { COMPANY_BOUNDS } from '../../tenancy/plans.ts'
import { SavedStore } from './saved-store.ts'
import { canSeeView, type ExplorerView, VISIBILITIES, type Visibility } from './view.ts'

type Row = { visibility: string; query: unknown }
type Content = { visibility: Visibility; query: object }

export const viewStore = new SavedStore<'explorer-view', ExplorerView, Row, Content>({
  table: 'explorer_view',
  max: COMPANY_BOUNDS.viewsMax,
  noun: 'saved views',
  columnsOf: ({ visibility, query }) => ({
    visibility,
    query: query && JSON.stringify(query),
  }),
  toItem: (common, { visibility, query }) => ({
    ...common,
    // An unknown visibility is treated as PRIVATE, so that others don't see the view.
    visibility: VISIBILITIES.find((known) => known === visibility) ?? 'PRIVATE',
    query,
  }),
  canSee: canSeeView,
})
