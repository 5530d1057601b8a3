import { ApiError } from '../../../errors.ts'

/**
 * The handler of operations that only the dashboard has. Never reached: the gate refuses every key before the
 * body or the id is read, so the refusal reveals nothing about either.
 */
export async function refuseKey(): Promise<never> {
  throw new ApiError('dashboard_only')
}
