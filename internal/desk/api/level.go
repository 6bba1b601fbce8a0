package api

// LevelHeader is a header of every answer of the API. By it a client knows a desk from a proxy, and an older desk from one
// of its own age. Its value is a [Level].
const LevelHeader = "Docket-Api"

// Level counts what answers have: raise it when the command line needs a member or a question that older desks lack.
// Desks without the header count as 0.
const Level = 1
