import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.BotApi;
import org.openapitools.client.api.OrganizationApi;
import org.openapitools.client.api.ProjectApi;
import org.openapitools.client.model.AddModelsRequest;
import org.openapitools.client.model.AddTeamUsersRequest;
import org.openapitools.client.model.ConflictProblem;
import org.openapitools.client.model.CreateDataStoreRequest;
import org.openapitools.client.model.CreateLoggingInstanceRequest;
import org.openapitools.client.model.CreateTeamRequest;
import org.openapitools.client.model.Model;
import org.openapitools.client.model.Problem;
import org.openapitools.client.model.ServerFailure;
import org.openapitools.client.model.SetBotVoiceRequest;
import org.openapitools.client.model.TeamUser;
import org.openapitools.client.model.ValidationProblem;

/** Calls the service with the client that OpenAPI Generator generates. Arguments: URL KEY. */
final class Scenario {
  private static final String ORG = "acme";
  private static final String PROJECT = "java";
  private static final String PREFER = "return=headers-only";

  private static ApiClient client(String url, String key) {
    ApiClient client = new ApiClient();
    client.updateBaseUri(url);
    client.setRequestInterceptor(
        request -> {
          if (key != null) {
            request.header("Authorization", "Bearer " + key);
          }
        });
    return client;
  }

  /** A call that must fail. */
  private interface Call {
    void run() throws ApiException;
  }

  /** The body of a failure as the type that the contract documents for its status. */
  private static <T> T failure(int status, Class<T> type, Call call) throws Exception {
    try {
      call.run();
    } catch (ApiException failure) {
      expect(failure.getCode() == status, failure);
      return new ApiClient().getObjectMapper().readValue(failure.getResponseBody(), type);
    }
    throw new AssertionError("the request succeeded");
  }

  private static void expect(boolean holds, Object found) {
    if (!holds) {
      throw new AssertionError(found);
    }
  }

  private static String id(Map<String, List<String>> headers) {
    return headers.get("x-resource-id").get(0);
  }

  public static void main(String[] arguments) throws Exception {
    ApiClient withKey = client(arguments[0], arguments[1]);
    ApiClient anonymous = client(arguments[0], null);
    ProjectApi projects = new ProjectApi(withKey);
    OrganizationApi organizations = new OrganizationApi(anonymous);

    Model model = new Model().id(1L).modelid("gpt-4o");
    organizations.addModels(ORG, PROJECT, new AddModelsRequest().aIModelsSelectedToAddToOrg(List.of(model)));

    CreateTeamRequest team = new CreateTeamRequest().teamName("Java Team").teamDescription("Reads papers");
    String teamId = id(projects.createTeamWithHttpInfo(ORG, PROJECT, team, PREFER).getHeaders());
    expect(teamId.equals("java-team"), teamId);

    AddTeamUsersRequest users = new AddTeamUsersRequest().addUsersAddingToTeamItem(new TeamUser().userid("ada"));
    projects.addTeamUsers(ORG, PROJECT, teamId, users);

    new BotApi(withKey).setBotVoice(PROJECT, new SetBotVoiceRequest().type("alloy").enabled(true));

    CreateDataStoreRequest dataStore = new CreateDataStoreRequest().dataStoreName("Java Papers");
    String dataStoreId = id(organizations.createDataStoreWithHttpInfo(ORG, dataStore, PREFER).getHeaders());
    expect(dataStoreId.equals("java-papers"), dataStoreId);

    projects.createLoggingInstance(ORG, PROJECT, new CreateLoggingInstanceRequest().projectName("Java"));

    CreateTeamRequest otherTeam = new CreateTeamRequest().teamName("Java Team");
    ConflictProblem taken =
        failure(409, ConflictProblem.class, () -> projects.createTeam(ORG, PROJECT, otherTeam, null));
    expect(taken.getReason().equals("other_description"), taken);
    expect(taken.getResourceId().equals("java-team"), taken);

    Problem rejected =
        failure(401, Problem.class, () -> new ProjectApi(anonymous).createTeam(ORG, PROJECT, team, null));
    expect(rejected.getCode().equals("unauthenticated"), rejected);

    AddTeamUsersRequest invalidUsers =
        new AddTeamUsersRequest().usersAddingToTeam(List.of(new TeamUser().userid("ada"), new TeamUser().userid(" grace")));
    ValidationProblem invalid =
        failure(422, ValidationProblem.class, () -> projects.addTeamUsers(ORG, PROJECT, teamId, invalidUsers));
    expect(invalid.getErrors().get(0).getPointer().equals("#/usersAddingToTeam/1/userid"), invalid);
    expect(invalid.getErrors().get(0).getRule().equals("pattern"), invalid);

    ServerFailure unavailable =
        failure(503, ServerFailure.class, () -> projects.createTeam(ORG, "gateway-503", team, null));
    expect(unavailable.getMessage().equals("Service Unavailable"), unavailable);

    ConflictProblem newReason =
        failure(409, ConflictProblem.class, () -> projects.createTeam(ORG, "new-reason", team, null));
    expect(newReason.getReason().equals("other_planet"), newReason);
  }
}
