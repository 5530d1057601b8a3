import { listRoutes } from '../../define-route.ts'
import { getNoticeMail } from './get-notice-mail.ts'
import { listNotices } from './list-notices.ts'
import { readNotices } from './read-notices.ts'
import { replaceNoticeMail } from './replace-notice-mail.ts'

export const NOTICES_ROUTES = listRoutes('Notices', {
  listNotices,
  readNotices,
  getNoticeMail,
  replaceNoticeMail,
})
