package v1

type MadeByAProgram struct {
}
