import { getRouteApi } from '@tanstack/react-router'
import { NotFound } from '../../shell/ErrorPages.tsx'
import { ActivitySection } from './activity/ActivitySection.tsx'
import { MembersSection } from './member/MembersSection.tsx'
import { UsageSection } from './usage/UsageSection.tsx'
import { WorkspacesSection } from './workspace/WorkspacesSection.tsx'

const route = getRouteApi('/shell/app/company/$section')

export function CompanyPage() {
  const { section } = route.useParams()
  switch (section) {
    case 'workspaces':
      return <WorkspacesSection />
    case 'members':
      return <MembersSection />
    case 'activity':
      return <ActivitySection />
    case 'usage':
      return <UsageSection />
    default:
      return <NotFound />
  }
}
