import { listRoutes } from '../../define-route.ts'
import { changePassword } from './change-password.ts'
import { endSession } from './end-session.ts'
import { endSessions } from './end-sessions.ts'
import { finishLogIn } from './finish-log-in.ts'
import { getSession } from './get-session.ts'
import { listSessions } from './list-sessions.ts'
import { logIn } from './log-in.ts'
import { logOut } from './log-out.ts'
import { getLink } from './get-link.ts'
import { requestPasswordReset } from './request-password-reset.ts'
import { useLink } from './use-link.ts'

export const SESSION_ROUTES = listRoutes('Session', {
  logIn,
  finishLogIn,
  getSession,
  logOut,
  listSessions,
  endSessions,
  endSession,
  changePassword,
  requestPasswordReset,
  getLink,
  useLink,
})
