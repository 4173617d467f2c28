// Includes a template in a stack of the CDK, and prints the template of that stack.
// usage: NODE_PATH=FOLDER node include.cjs packaged.yaml
const { App, Stack } = require("aws-cdk-lib");
const { CfnInclude } = require("aws-cdk-lib/cloudformation-include");

const app = new App({ analyticsReporting: false, outdir: process.env.CDK_OUTDIR });
const stack = new Stack(app, "Stack");
new CfnInclude(stack, "WorkspaceManagement", { templateFile: process.argv[2], allowCyclicalReferences: true });
console.log(JSON.stringify(app.synth().getStackArtifact(stack.artifactId).template));
