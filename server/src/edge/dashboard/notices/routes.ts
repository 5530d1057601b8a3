import { listRoutes } from '../../define-route.ts'
import { listNotices } from './list-notices.ts'
import { readNotices } from './read-notices.ts'

export const NOTICES_ROUTES = listRoutes('Notices', { listNotices, readNotices })
