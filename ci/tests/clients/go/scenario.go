// Calls the service with the client that OpenAPI Generator generates.
// Usage: scenario URL KEY
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"scenario/client"
)

const org, project, prefer = "acme", "go", "return=headers-only"

func main() {
	configuration := client.NewConfiguration()
	configuration.Servers = client.ServerConfigurations{{URL: os.Args[1]}}
	api := client.NewAPIClient(configuration)
	anonymous := context.Background()
	withKey := context.WithValue(anonymous, client.ContextAccessToken, os.Args[2])

	models := client.NewAddModelsRequest([]client.Model{*client.NewModel(1, "gpt-4o")})
	response, err := api.OrganizationAPI.AddModels(anonymous, org, project).AddModelsRequest(*models).Execute()
	expectStatus(response, err, 204)

	createTeam := func(ctx context.Context, project, description string) (*http.Response, error) {
		team := client.NewCreateTeamRequest("Go Team")
		team.SetTeamDescription(description)
		return api.ProjectAPI.CreateTeam(ctx, org, project).CreateTeamRequest(*team).Prefer(prefer).Execute()
	}
	response, err = createTeam(withKey, project, "Reads papers")
	expectStatus(response, err, 204)
	teamID := response.Header.Get("x-resource-id")
	expect(teamID == "go-team", teamID)

	addUsers := func(users ...string) (*http.Response, error) {
		var list []client.TeamUser
		for _, user := range users {
			list = append(list, *client.NewTeamUser(user))
		}
		request := api.ProjectAPI.AddTeamUsers(withKey, org, project, teamID)
		return request.AddTeamUsersRequest(*client.NewAddTeamUsersRequest(list)).Execute()
	}
	response, err = addUsers("ada", "grace")
	expectStatus(response, err, 204)

	voice := client.NewSetBotVoiceRequest("alloy", true)
	response, err = api.BotAPI.SetBotVoice(withKey, project).SetBotVoiceRequest(*voice).Execute()
	expectStatus(response, err, 204)

	dataStore := client.NewCreateDataStoreRequest("Go Papers")
	response, err = api.OrganizationAPI.CreateDataStore(anonymous, org).CreateDataStoreRequest(*dataStore).Prefer(prefer).Execute()
	expectStatus(response, err, 204)
	expect(response.Header.Get("x-resource-id") == "go-papers", response.Header)

	instance := client.NewCreateLoggingInstanceRequest("Go")
	response, err = api.ProjectAPI.CreateLoggingInstance(withKey, org, project).CreateLoggingInstanceRequest(*instance).Execute()
	expectStatus(response, err, 204)

	_, err = createTeam(withKey, project, "Writes papers")
	taken := problem[client.ConflictProblem](err)
	expect(taken.Reason == "other_description" && taken.GetResourceId() == "go-team", taken)

	_, err = createTeam(anonymous, project, "")
	rejected := problem[client.Problem](err)
	expect(rejected.Status == 401 && rejected.Code == "unauthenticated", rejected)

	_, err = addUsers("ada", " grace")
	invalid := problem[client.ValidationProblem](err)
	expect(len(invalid.Errors) == 1, invalid)
	violation := invalid.Errors[0]
	expect(violation.Pointer == "#/usersAddingToTeam/1/userid" && violation.Rule == "pattern", violation)

	response, err = createTeam(withKey, "gateway-503", "")
	expect(response.StatusCode == 503, response)
	unavailable := problem[client.ServerFailure](err)
	expect(unavailable.GetMessage() == "Service Unavailable", unavailable)

	_, err = createTeam(withKey, "new-reason", "")
	newReason := problem[client.ConflictProblem](err)
	expect(newReason.Reason == "other_planet", newReason)
}

// problem returns the typed body of a failure.
func problem[T any](err error) T {
	var failure *client.GenericOpenAPIError
	expect(errors.As(err, &failure), err)
	model, ok := failure.Model().(T)
	expect(ok, fmt.Sprintf("%T: %s", failure.Model(), failure.Body()))
	return model
}

func expectStatus(response *http.Response, err error, status int) {
	expect(err == nil && response.StatusCode == status, err)
}

func expect(holds bool, found any) {
	if !holds {
		panic(fmt.Sprintf("unexpected: %+v", found))
	}
}
