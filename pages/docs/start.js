/** Shows the API description of this server. Nothing is asked of any other host, and no key is kept. */

globalThis.SwaggerUIBundle({
  url: new URL("openapi.json", document.baseURI).href,
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  filter: true,
  tryItOutEnabled: false,
  persistAuthorization: false,
  validatorUrl: null, // the renderer's own default sends the address of the description to a public host
  displayRequestDuration: true,
});
