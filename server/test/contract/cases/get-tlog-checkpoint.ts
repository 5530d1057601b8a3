import type { OperationCases } from '../driver.ts'
import { signedCases } from '../signed-cases.ts'

export const getTlogCheckpoint: OperationCases = { cases: signedCases('/tlog/checkpoint') }
