import { Type } from 'typebox'
import { NOTICE_KINDS, NOTICE_SEVERITIES } from '../../../tenancy/notice/notice.ts'
import { CursorQuery, DateTime, NextCursor, Nullable, STRICT, Uuid } from '../common.ts'
import { named } from '../named.ts'

const NOTICES_PER_PAGE_MAX = 200

const NoticeKindName = Type.Enum([...NOTICE_KINDS])

const NoticeRecord = named(
  'Notice',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the notice.' },
      kind: { ...NoticeKindName, description: 'What the notice is about.' },
      severity: Type.Enum([...NOTICE_SEVERITIES], { description: 'How urgent the notice is.' }),
      workspaceId: Nullable({
        ...Uuid,
        description: 'The ID of the workspace. Null if it is not about a single workspace.',
      }),
      message: Type.String({ description: 'What happened, in sentences.' }),
      link: Type.String({
        description: 'The path of the page where members can do something about it.',
      }),
      createdAt: { ...DateTime, description: 'When the notice was created.' },
      isRead: Type.Boolean({ description: 'Whether the signed-in member has read it.' }),
    },
    { ...STRICT, description: 'Something that needs attention.' },
  ),
)

export const NoticePage = Type.Object(
  {
    data: Type.Array(NoticeRecord, { description: 'The notices, newest first.' }),
    unreadCount: Type.Integer({
      minimum: 0,
      description: 'How many notices the member has not read, on all pages.',
    }),
    nextCursor: NextCursor,
  },
  { ...STRICT, description: 'A page of notices.' },
)

export const NoticeQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: NOTICES_PER_PAGE_MAX,
        default: 50,
        description: 'The maximum number of notices per page.',
      }),
    ),
    cursor: Type.Optional(CursorQuery),
  },
  STRICT,
)

export const ReadNotices = Type.Object(
  {
    noticeIds: Type.Array(Uuid, {
      minItems: 1,
      maxItems: NOTICES_PER_PAGE_MAX,
      description: 'The IDs of the notices. IDs of other notices are ignored.',
    }),
  },
  { ...STRICT, description: 'The notices that the member has read.' },
)

export const NoticeMailSettings = named(
  'NoticeMailSettings',
  Type.Object(
    {
      isConfigured: Type.Boolean({ description: 'Whether this installation sends mail.' }),
      kinds: Type.Array(NoticeKindName, {
        description: 'The kinds of notices that the member can see.',
      }),
      off: Type.Array(NoticeKindName, {
        description: 'The kinds that the member does not get by mail.',
      }),
    },
    { ...STRICT, description: 'Which notices the member gets by mail.' },
  ),
)

export const NoticeMailInput = Type.Object(
  {
    off: Type.Array(NoticeKindName, {
      maxItems: NOTICE_KINDS.length,
      uniqueItems: true,
      description: 'The kinds that the member does not want by mail. All others are on.',
    }),
  },
  { ...STRICT, description: 'Which notices the member wants by mail.' },
)
