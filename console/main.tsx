/** Entry of the console: draws the page that the address names, behind the form for the key. */

import { render } from "preact";
import { App } from "./shell/app.tsx";
import { startSession } from "./service/session.ts";
import "./service/media.ts"; // its service worker is to be ready before the first picture
import "./styles/main.css";

startSession();
render(<App />, document.getElementById("app")!);
