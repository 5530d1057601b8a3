import type { OperationCases } from '../driver.ts'
import { workspaceCases } from '../workspace-cases.ts'

export const listProjects: OperationCases = { cases: workspaceCases('/projects') }
